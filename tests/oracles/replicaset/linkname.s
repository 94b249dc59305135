// Without a file like this one Go refuses functions that have no body; those of oracle_test.go are linked by name.
