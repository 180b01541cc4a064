// Command stubborn is an operator that does not stop.
package main

import (
	"fmt"
	"os"
	"os/signal"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	fmt.Printf(`{"pid": %d}`+"\n", os.Getpid())
	for range signals {
		fmt.Println(`{"ignored": true}`)
	}
}
