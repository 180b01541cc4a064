module gopf.dev/gopf/examples/upgrade

go 1.26.0
