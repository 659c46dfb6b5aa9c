package main

func Example() {
	main()
	// Output:
	// order-42 in one call: [{1 placed} {2 paid} {3 shipped}]
}
