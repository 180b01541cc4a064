module gopf.dev/gopf/examples/database

go 1.26.0
