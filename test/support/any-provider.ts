/**
 * The environment of a gateway that admits every provider, as most tests need. A file that says who may connect keeps
 * its word.
 */
export const anyProvider = (toml = ''): { readonly TOLLGATE_PROVIDERS?: string } =>
  /^providers = /m.test(toml) ? {} : { TOLLGATE_PROVIDERS: 'anyone' };
