import { GatewayError, printable, type RequestMessage } from '#wire';
import { nearestHint, type Catalog, type Offer } from '#gateway';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import { allWithin } from '../request/waiting.ts';

interface UnlistedToolDeps {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly catalogue: Pick<ToolCatalogue, 'listingOf' | 'renewed'>;
}

/**
 * The error of a call of a tool that no provider of the target lists; null if one lists it, or may have it beyond the
 * lists that are known here. For calls that are refused because money is missing: nobody should pay to learn that there
 * is no such tool. All other calls go to the server, which knows better.
 */
export type UnlistedTool = (target: string, message: RequestMessage) => Promise<GatewayError | null>;

/** How long a refusal waits for servers that are asked for their lists again. */
const RENEWED_WITHIN_MS = 3_000;

export function createUnlistedTool({ catalog, catalogue }: UnlistedToolDeps): UnlistedTool {
  const lacks = (offer: Offer, tool: string) => {
    const listing = catalogue.listingOf(offer);
    return listing !== null && !listing.truncated && !listing.tools.has(tool);
  };
  return async (target, { params }) => {
    const tool = String(params?.['name']);
    const { offers } = catalog.resolve(target, 'tool');
    const isUnlisted = () => offers.every((offer) => lacks(offer, tool));
    if (!isUnlisted()) return null;
    // The tool may be newer than the lists.
    await allWithin(RENEWED_WITHIN_MS, offers.map(catalogue.renewed));
    if (!isUnlisted()) return null;
    const names = new Set(offers.flatMap((offer) => [...(catalogue.listingOf(offer)?.tools.keys() ?? [])]));
    const hint = nearestHint(tool, names) || 'tools/list shows all';
    return new GatewayError('invalid_request', `There is no tool ${printable(tool)} here. ${hint}`, {
      param: 'params.name',
    });
  };
}
