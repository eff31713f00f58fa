module usages

go 1.19
