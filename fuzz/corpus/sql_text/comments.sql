SELECT * -- all of it
FROM c -- the container