package pages

type Mail struct{ To string }
