import { isLoopback } from '#security';
import type { ChainConfig } from './chains.ts';
import type { ListedProvider } from './known-providers.ts';
import type { ServiceConfig } from './service.ts';
import type { AdmittedProviders } from './options/network.ts';
import type { OptionValues } from './options.ts';

/** The configuration of a gateway process. The CLI reads it, freezes it, and passes it as an argument. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

export type Mode = 'development' | 'production';
export type LimitsConfig = Config['limits'];
export type SignInConfig = Config['signIn'];
export type TunnelConfig = Config['tunnel'];
export type ClusterConfig = Config['cluster'];

/**
 * Combines the sections of options. The options of `server` and `telemetry` and the URLs of the stores become top-level
 * fields.
 */
export function toConfig(
  mode: Mode,
  values: OptionValues,
  blocks: {
    readonly chains: readonly ChainConfig[];
    readonly providers: readonly ListedProvider[];
    readonly services: readonly ServiceConfig[];
  },
) {
  const { server, database, redis, telemetry, ...sections } = values;
  return {
    mode,
    ...server,
    databaseUrl: database.url,
    redisUrl: redis.url,
    ...telemetry,
    ...sections,
    signIn: { ...sections.signIn, domains: signInDomains(mode, values) },
    authorization: { ...sections.authorization, enabled: authorizes(mode, values, blocks.chains) },
    tunnel: { ...sections.tunnel, providers: admitted(mode, values) },
    ...blocks,
  };
}

/** A development gateway that only this machine can reach admits every provider, unless its file says otherwise. */
const admitted = (mode: Mode, { tunnel, server }: OptionValues): AdmittedProviders =>
  tunnel.providers ?? (mode === 'development' && isLoopback(server.host) ? 'anyone' : null);

/**
 * A development gateway that only this machine can reach has an authorization server, unless another issuer is set. One
 * with chains has none, because clients without a credential pay there in place.
 */
function authorizes(
  mode: Mode,
  { authorization, oauth, server }: OptionValues,
  chains: readonly ChainConfig[],
): boolean {
  const isOpen = mode === 'development' && isLoopback(server.host) && oauth.issuer === null && chains.length === 0;
  return authorization.enabled ?? isOpen;
}

/**
 * The domains for sign-in. In development they include this gateway's loopback addresses. In production they do not,
 * because a message that was signed for a loopback address could be meant for another gateway.
 */
function signInDomains(mode: Mode, { signIn, server: { publicUrl, port } }: OptionValues): readonly string[] {
  const domains = new Set(signIn.domains);
  if (publicUrl !== null) domains.add(new URL(publicUrl).host);
  if (mode === 'development') for (const host of ['localhost', '127.0.0.1', '[::1]']) domains.add(`${host}:${port}`);
  return [...domains];
}

export function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}
