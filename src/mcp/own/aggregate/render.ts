import { membersOf, splice, withMembers } from '#wire';
import { viewToolCallPrice } from '#gateway';
import { writeMeta } from '../../catalogue/decorate.ts';
import type { ListedItem } from '../../catalogue/listing.ts';
import type { ServiceTool } from '../../catalogue/merge-listings.ts';
import type { ServiceTable } from './tables.ts';
import { createUriEdits } from './uri-edits.ts';

/**
 * A tool in the list of the aggregate, as JSON text. It is the server's text with the name here, the price, and the
 * digest of the definition.
 */
export function renderTool({ slug, listing }: ServiceTable, exposed: string, { tool, offer }: ServiceTool): string {
  const edits = createUriEdits(tool.text, slug);
  edits.ui(membersOf(tool.text));
  const text = splice(tool.text, edits.edits);
  return writeMeta(text, JSON.stringify(viewToolCallPrice(offer, tool.name, listing.offers)), tool.definition, {
    name: JSON.stringify(exposed),
  });
}

/** A prompt, resource or template in the list of the aggregate. `key`: the member with its name or URI. */
export function renderItem(exposed: string, { text }: ListedItem, key: 'name' | 'uri' | 'uriTemplate'): string {
  return withMembers(text, { start: 0, end: text.length }, { [key]: JSON.stringify(exposed) }).text;
}
