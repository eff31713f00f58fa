-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- Haskell: what lies at the stack pointer is no return address, and nothing returns by RET.
import Control.Concurrent (threadDelay)
import Data.IORef
import System.Environment (getArgs)
import System.IO
import System.Posix.Signals

work :: Int -> Integer
work n = sum (map (\x -> toInteger x * toInteger x) [1 .. n])
{-# NOINLINE work #-}

loop :: IORef Bool -> Int -> Int -> IO ()
loop stop rounds wrong = do
  done <- readIORef stop
  if done
    then putStrLn ((if wrong == 0 then "unharmed" else "HARMED") ++ ": " ++ show wrong ++ " of " ++ show rounds ++ " rounds were wrong")
    else do
      n <- readIORef stop >>= \s -> return (if s then 0 else 50)
      let bad = if n == 0 || work n == 42925 then 0 else 1
      threadDelay 2000
      bad `seq` loop stop (rounds + 1) (wrong + bad)

main :: IO ()
main = do
  arguments <- getArgs
  if null arguments
    then putStrLn ("result " ++ show (work 50))
    else do
      stop <- newIORef False
      _ <- installHandler sigTERM (Catch (writeIORef stop True)) Nothing
      putStrLn "ready"
      hFlush stdout
      loop stop 0 0
