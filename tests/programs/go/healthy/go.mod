module healthy

go 1.18
