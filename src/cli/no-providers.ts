/** Says that no provider can connect because the file does not say who may, with the line to add. */
export const NO_PROVIDERS =
  'nobody may connect, because the file does not say who may. Add to it, below [tunnel]: providers = "anyone" for an open market, a list of public keys or account ids for some, or "nobody"';
