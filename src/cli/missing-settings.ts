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

/** Says what agents cannot do because the gateway does not know its own address. */
export const NO_AGENT_ADDRESS =
  'agents cannot send notifications about their tasks, and run tokens do not say where to call, because this gateway does not know its own address: set server.public_url';

/** Whether this file has agents, and no address for them. */
export const agentsLackAddress = ({ publicUrl, services }: Config): boolean =>
  publicUrl === null && services.some(({ service }) => service.primitive === 'agent');

/** Names what does not work because the gateway does not know its own address, one line for each. */
export function missingAddress(config: Config): readonly string[] {
  const noSignIn = config.signIn.domains.length === 0;
  const sells = admitsProviders(config);
  return [
    ...(noSignIn && sells ? [`Providers: ${NO_SIGN_IN}`] : []),
    ...(noSignIn && !sells && config.chains.length > 0
      ? [`Wallets: ${NO_SIGN_IN}. They can pay for calls, but not see or withdraw what is left`]
      : []),
    ...(agentsLackAddress(config) ? [`Agents: ${NO_AGENT_ADDRESS}`] : []),
  ];
}

/** Says that nothing is on sale, and what to do. null if the file has services, or lets providers in. */
export function nothingToSell(config: Config, file: string | null): string | null {
  if (config.services.length > 0 || admitsProviders(config)) return null;
  const where = file === null ? 'no configuration file is named' : `${file} has no services`;
  return `Nothing is on sale: ${where}, and no provider may connect. ${
    file === null ? 'Name a file with --config' : 'Add [[models]] or other services'
  }, or let providers in with tunnel.providers`;
}
