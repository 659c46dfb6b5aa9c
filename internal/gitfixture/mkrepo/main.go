// Mkrepo writes a generated bare git repository of some tens of thousands of
// file changes, hard to replay, into an empty or absent directory:
//
//	go run ./internal/gitfixture/mkrepo DIR
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/skeinq/skein/internal/command"
	"github.com/skeinq/skein/internal/gitfixture"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mkrepo DIR")
		os.Exit(2)
	}
	ctx, stop := command.Context(context.Background())
	err := gitfixture.Write(ctx, os.Args[1], gitfixture.Options{})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkrepo:", err)
		os.Exit(1)
	}
}
