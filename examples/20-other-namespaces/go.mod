module gopf.dev/gopf/examples/20-other-namespaces

go 1.26.0
