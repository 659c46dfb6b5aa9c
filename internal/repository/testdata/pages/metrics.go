package pages

var registry interface{ MustRegister(...any) }
