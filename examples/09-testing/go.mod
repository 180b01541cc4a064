module gopf.dev/gopf/examples/09-testing

go 1.26.0
