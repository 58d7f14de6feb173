import type { DirectEndpoint, TunnelEndpoint, Upstream, UpstreamOf } from '#gateway';

interface UpstreamWays {
  readonly direct: UpstreamOf<DirectEndpoint>;
  readonly tunnel: UpstreamOf<TunnelEndpoint>;
}

/** Sends requests directly or through a tunnel, by the kind of the endpoint. */
export function createUpstream({ direct, tunnel }: UpstreamWays): Upstream {
  return {
    send: (endpoint, request, account, last) =>
      endpoint.kind === 'direct'
        ? direct.send(endpoint, request, account, last)
        : tunnel.send(endpoint, request, account, last),
    async close() {
      await Promise.all([direct.close(), tunnel.close()]);
    },
  };
}
