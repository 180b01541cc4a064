package otel_test

import (
	"context"
	"log"

	"gopf.dev/gopf"
	"gopf.dev/gopf/otel"
)

func ExampleUse() {
	op := gopf.New()
	shutdown, err := otel.Use(op)
	if err != nil {
		log.Fatal(err)
	}
	if err := op.Run(context.Background()); err != nil {
		log.Print(err)
	}
	if err := shutdown(context.Background()); err != nil {
		log.Print(err)
	}
}
