module locklab

go 1.26

require (
	github.com/agext/levenshtein v1.2.3 // indirect
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
