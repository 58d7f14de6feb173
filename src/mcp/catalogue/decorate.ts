import {
  beginsAsOwn,
  type Edit,
  elementsOf,
  isObject,
  type Members,
  membersOf,
  RawJsonError,
  splice,
  withMembers,
} from '#wire';
import { type Offer, type ToolDefinition, viewDefinition, viewToolCallPrice } from '#catalog';
import { readTool } from './listing.ts';
import type { ToolCatalogue } from './tool-catalogue.ts';

/** The gateway's members of a tool's `_meta`. They replace those that a server writes. */
export const TOOL_META = { price: 'tollgate/price', definition: 'tollgate/definition' } as const;

interface DecorateOptions {
  readonly catalogue: Pick<ToolCatalogue, 'listingOf' | 'stale'>;
  readonly now: () => number;
}

/**
 * Writes the price and the state of the definition into each tool of a `tools/list` result (JSON text). All else is
 * unchanged. `offers`: all offers that a call of the service may be sent to. A text that is not such a result is
 * returned unchanged.
 */
type Decorate = (text: string, offer: Offer, offers?: readonly Offer[]) => string;

export function createDecorate({ catalogue, now }: DecorateOptions): Decorate {
  return (text, offer, offers = [offer]) => {
    const listing = catalogue.listingOf(offer);
    let stale = false;

    /** A definition that differs from the pinned one is shown as a change even before the new pin is stored. */
    const definitionOf = (name: string, tool: string): ToolDefinition => {
      const known = listing?.tools.get(name);
      if (known?.text === tool) return known.definition;
      const { sha256, remoteRef } = readTool(tool);
      if (known?.definition.sha256 === sha256) return known.definition;
      stale = true;
      const version = known ? known.definition.version : listing && !listing.truncated ? 0 : null;
      return { sha256, remoteRef, version: version === null ? null : version + 1, changedAt: version ? now() : null };
    };

    const common = JSON.stringify(viewToolCallPrice(offer, '', offers));
    const priceOf = (tool: string) =>
      offers.some(({ variants }) => Object.hasOwn(variants, tool))
        ? JSON.stringify(viewToolCallPrice(offer, tool, offers))
        : common;

    const decorateOne = (written: string): string | null => {
      const tool = readOnce(written);
      return tool && writeMeta(tool.text, priceOf(tool.name), definitionOf(tool.name, tool.text));
    };

    try {
      const list = membersOf(text).get('tools');
      if (!list) return text;
      const edits: Edit[] = [];
      for (const { start, end } of elementsOf(text, list.start)) {
        const decorated = decorateOne(text.slice(start, end));
        if (decorated !== null) edits.push({ start, end, text: decorated });
      }
      return splice(text, edits);
    } catch (error) {
      if (error instanceof RawJsonError || error instanceof SyntaxError) return text;
      throw error;
    } finally {
      if (stale) catalogue.stale(offer);
    }
  };
}

/**
 * A tool as an object without duplicate keys. If a key occurs twice, the last value counts, as for most readers. Null
 * for an element without a name.
 */
function readOnce(written: string): { readonly text: string; readonly name: string } | null {
  try {
    const member = membersOf(written).get('name');
    const name: unknown = member && JSON.parse(written.slice(member.start, member.end));
    return typeof name === 'string' ? { text: written, name } : null;
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    const value: unknown = JSON.parse(written);
    const name = isObject(value) ? value['name'] : null;
    return typeof name === 'string' ? { text: JSON.stringify(value), name } : null;
  }
}

/**
 * The tool (JSON text without duplicate keys) with price (JSON text) and definition in its `_meta`. A `_meta` that is
 * not an object, or has a duplicate key, is replaced.
 */
export function writeMeta(
  tool: string,
  price: string,
  definition: ToolDefinition,
  more: Readonly<Record<string, string>> = {},
): string {
  const members: Record<string, string> = {
    [TOOL_META.price]: price,
    [TOOL_META.definition]: JSON.stringify(viewDefinition(definition)),
  };
  const whole = { start: 0, end: tool.length };
  const old = membersOf(tool).get('_meta');
  let meta: string | null = null;
  if (old)
    try {
      meta = withMembers(tool, old, { ...withoutOwn(membersOf(tool, old.start)), ...members }).text;
    } catch (error) {
      if (!(error instanceof RawJsonError)) throw error;
    }
  meta ??= `{${Object.entries(members).map(([key, value]) => `${JSON.stringify(key)}:${value}`)}}`;
  return withMembers(tool, whole, { ...more, _meta: meta }).text;
}

/**
 * A change that removes a server's members with the gateway's prefix. Some clients send the `_meta` of a listed tool
 * with each call, where such a member would be refused, or would be a cap or a key that the client did not choose.
 */
const withoutOwn = (meta: Members): Record<string, null> =>
  Object.fromEntries([...meta.keys()].filter(isOwn).map((name) => [name, null]));

const isOwn = (name: string) => beginsAsOwn(name) || name.startsWith('x402/');
