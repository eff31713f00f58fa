module read_again

go 1.19
