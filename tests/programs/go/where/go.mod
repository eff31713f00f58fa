module where

go 1.19
