module goload

go 1.25
