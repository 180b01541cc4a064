module gopf.dev/gopf/examples/19-levels

go 1.26.0
