module tollgate.test/clients

go 1.22

require github.com/sashabaranov/go-openai v1.43.0
