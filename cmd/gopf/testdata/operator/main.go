// Command operator stands for one in the tests of gopf. It tells its process id,
// arguments and kubeconfig, and then does what the arguments say: those of "run"
// may be "--exit CODE".
package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	say(map[string]any{"pid": os.Getpid(), "args": os.Args[1:], "kubeconfig": os.Getenv("KUBECONFIG")})
	args := os.Args[1:]
	if len(args) > 1 && args[0] == "run" && args[1] == "--exit" {
		args = []string{"exit", args[2]}
	}
	switch args[0] {
	case "exit":
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "stubborn":
		for range signals {
			say(map[string]any{"ignored": true})
		}
	default:
		s := <-signals
		say(map[string]any{"signals": 1 + len(signals), "said": s.String()})
	}
}

func say(what map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		os.Exit(9)
	}
}
