module conducted

go 1.19
