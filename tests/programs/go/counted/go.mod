module counted

go 1.19
