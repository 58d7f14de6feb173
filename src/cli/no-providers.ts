import type { Config } from '#config';

/** Says that no provider can connect because the file does not say who may, with the line to add. */
export const NO_PROVIDERS =
  'nobody may connect, because the file does not say who may. Add to it, below [tunnel]: providers = "anyone" for an open market, a list of public keys or account ids for some, or "nobody"';

/** Says that no wallet can sign in because the gateway does not know its own name, with the line to add. */
export const NO_SIGN_IN =
  "no wallet can sign in, nor a provider's: set [sign_in] domains, or server.public_url, to the host that they know this gateway by";

/** Whether the file says that some provider may connect. */
export const admitsProviders = ({ tunnel: { providers } }: Config): boolean =>
  providers !== null && providers !== 'nobody' && (providers === 'anyone' || providers.length > 0);
