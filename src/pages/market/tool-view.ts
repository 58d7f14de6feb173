import {
  type Offer,
  compare,
  viewDefinition,
  type DefinitionView,
  type ListedTool,
  type ToolListings,
  byPrice,
  viewToolCallPrice,
  type ToolCallPrice,
} from '#gateway';

/** The tools of a service. */
export interface ServiceToolsView {
  /** Sorted by name. null while they are unknown. */
  readonly tools: readonly ToolView[] | null;
  /** The number of all tools, also if `tools` is cut. */
  readonly tools_total: number;
}

interface ToolView {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly price: ToolCallPrice;
  readonly definition: DefinitionView;
  readonly input_schema?: unknown;
}

export interface ToolViewOptions {
  /** The most tools to show. */
  readonly max: number;
  /** The most characters of a description. */
  readonly descriptionMax: number;
  readonly schemas: boolean;
}

/**
 * The tools that at least one of a service's offers lists. If several offers list a tool, the cheapest offer describes
 * it.
 */
export function viewTools(
  offers: readonly Offer[],
  listings: ToolListings,
  { max, descriptionMax, schemas }: ToolViewOptions,
): ServiceToolsView {
  const found = new Map<string, readonly [ListedTool, Offer]>();
  let known = false;
  for (const offer of byPrice(offers)) {
    const tools = listings.toolsOf(offer);
    known ||= tools !== null;
    for (const tool of tools ?? []) if (!found.has(tool.name)) found.set(tool.name, [tool, offer]);
  }
  if (!known) return { tools: null, tools_total: 0 };
  const shown = [...found.values()].sort(([a], [b]) => compare(a.name, b.name)).slice(0, max);
  return {
    tools: shown.map(([tool, offer]) => ({
      name: tool.name,
      title: tool.title,
      description: tool.description.slice(0, descriptionMax),
      price: viewToolCallPrice(offer, tool.name, offers),
      definition: viewDefinition(tool.definition),
      ...(schemas ? { input_schema: tool.inputSchema ?? null } : {}),
    })),
    tools_total: found.size,
  };
}
