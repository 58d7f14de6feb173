import { GatewayError } from '#wire';
import type { Catalog } from '#gateway';
import type { ServiceListing } from '../../catalogue/merge-listings.ts';
import type { ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { TOOL_NAME_MAX } from '../request-call.ts';

/** Most characters of a name: a pinned service with its tool. */
const NAME_MAX = 512;
const LISTED_WITHIN_MS = 5_000;

/** The tool that a name refers to. */
interface Place {
  /** The service as the caller wrote it. */
  readonly target: string;
  readonly tool: string;
  readonly listing: ServiceListing;
}

/** Finds tools by their names, `<service>/<tool>`. */
interface ToolLookup {
  /** Null for a name that is not that of a tool. */
  locate(name: string): Place | null;
  /** Waits for the lists of a service that was never reached. Resolves to null for an unknown service. */
  listed(service: string): Promise<ServiceListing | null>;
  /** The names of all tools, each with its service. */
  names(): Generator<string>;
}

export function createToolLookup({
  catalog,
  catalogue,
}: {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly catalogue: Pick<ToolCatalogue, 'services' | 'service' | 'tried'>;
}): ToolLookup {
  function serviceOf(target: string): ServiceListing | null {
    const exact = catalogue.service(target);
    // The name may be pinned to a provider, or may end with a preference for choosing the provider.
    if (exact || !target.includes(':')) return exact;
    try {
      return catalogue.service(catalog.resolve(target, 'tool').service);
    } catch (error) {
      if (error instanceof GatewayError) return null;
      throw error;
    }
  }

  /** The longest known service name at the beginning of the name counts. The rest is the name of its tool. */
  function locate(name: string): Place | null {
    if (name.length > NAME_MAX) return null;
    for (let slash = name.lastIndexOf('/'); slash > 0; slash = name.lastIndexOf('/', slash - 1)) {
      const target = name.slice(0, slash);
      const listing = serviceOf(target);
      if (listing === null) continue;
      const tool = name.slice(slash + 1);
      if (tool === '' || tool.length > TOOL_NAME_MAX) return null;
      const complete = listing.listings.every((one) => one !== null && !one.truncated);
      return listing.tools.has(tool) || !complete ? { target, tool, listing } : null;
    }
    return null;
  }

  function* names(): Generator<string> {
    for (const service of catalogue.services())
      for (const tool of catalogue.service(service)?.tools.keys() ?? []) yield `${service}/${tool}`;
  }

  async function listed(service: string): Promise<ServiceListing | null> {
    const listing = catalogue.service(service);
    if (listing === null || listing.listings.some((one) => one !== null)) return listing;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, LISTED_WITHIN_MS);
    await Promise.race([catalogue.tried(service), late.promise]);
    clearTimeout(timer);
    return catalogue.service(service);
  }

  return { locate, listed, names };
}
