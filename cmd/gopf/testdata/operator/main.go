// Command operator stands for one in the tests of gopf. It tells its process id,
// arguments and kubeconfig, and then does what the first argument says.
package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"strconv"
)

func main() {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, os.Interrupt)
	say(map[string]any{"pid": os.Getpid(), "args": os.Args[1:], "kubeconfig": os.Getenv("KUBECONFIG")})
	switch os.Args[1] {
	case "exit":
		code, _ := strconv.Atoi(os.Args[2])
		os.Exit(code)
	case "stubborn":
		for range signals {
			say(map[string]any{"ignored": true})
		}
	default:
		<-signals
		say(map[string]any{"signals": 1 + len(signals)})
	}
}

func say(what map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		os.Exit(9)
	}
}
