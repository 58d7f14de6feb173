import { membersOf, splice, withMembers } from '#wire';
import { viewToolCallPrice } from '#gateway';
import { writeMeta } from '../../catalogue/decorate.ts';
import type { ListedItem } from '../../catalogue/listing.ts';
import type { ServiceTool } from '../../catalogue/merge-listings.ts';
import type { ServiceTable } from './tables.ts';
import { createUriEdits } from './uri-edits.ts';

/**
 * A tool as the aggregate lists it, JSON text: as its server wrote it, with its name here, its price and its
 * definition's digest.
 */
export function renderTool({ slug, listing }: ServiceTable, exposed: string, { tool, offer }: ServiceTool): string {
  const edits = createUriEdits(tool.text, slug);
  edits.ui(membersOf(tool.text));
  const text = splice(tool.text, edits.edits);
  return writeMeta(text, JSON.stringify(viewToolCallPrice(offer, tool.name, listing.offers)), tool.definition, {
    name: JSON.stringify(exposed),
  });
}

/** A prompt, resource or template as the aggregate lists it: `key` is the member that it is known by. */
export function renderItem(exposed: string, { text }: ListedItem, key: 'name' | 'uri' | 'uriTemplate'): string {
  return withMembers(text, { start: 0, end: text.length }, { [key]: JSON.stringify(exposed) }).text;
}
