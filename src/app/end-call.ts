import { GatewayError } from '#errors';
import { endCallAt, type CallToEnd } from '#network';
import type { RunningCalls } from '#gateway/compose';
import type { Logger } from '#observe';
import type { Network } from './network.ts';

/** Ends a call of this gateway. Returns whether it was at work here. */
export function endCallHere(running: RunningCalls, logger: Pick<Logger, 'info'>, call: CallToEnd): boolean {
  const { id, by, reason } = call;
  const words = reason === null ? '' : `: ${reason}`;
  const error = new GatewayError('call_ended', `The operator of this gateway ended the call${words}`, {
    // SDKs repeat a call with this status, and the operator would have to end it again.
    headers: { 'x-should-retry': 'false' },
  });
  const ended = running.end(id, error);
  if (ended) logger.info({ generation: id, administrator: by, reason }, 'an administrator ended a call');
  return ended;
}

/**
 * Ends a call at whichever gateway of the database it runs. Resolves with whether one of them ran it, and with the
 * addresses of gateways that did not answer.
 */
export function createEndCall({
  cluster,
  registry,
  endHere,
}: Pick<Network, 'cluster' | 'registry'> & { readonly endHere: (call: CallToEnd) => boolean }) {
  return async (call: CallToEnd): Promise<{ readonly ended: boolean; readonly silent: readonly string[] }> => {
    // The calls under it may run at other gateways, so all of them are asked.
    const here = endHere(call);
    if (cluster.peers === null) return { ended: here, silent: [] };
    const elsewhere = await endCallAt(cluster.peers, registry.others(), call);
    return { ended: here || elsewhere.ended, silent: elsewhere.silent };
  };
}
