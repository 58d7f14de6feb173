/** A new id. Browsers have `crypto.randomUUID` only over https and on localhost. */
export const newId = (): string => crypto.getRandomValues(new Uint8Array(16)).toHex();
