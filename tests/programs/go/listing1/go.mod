module listing1

go 1.19
