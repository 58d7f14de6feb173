/** The kinds of services, as the API names them. */
export const KINDS = ['model', 'tool', 'agent', 'image', 'video'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_NAMES: Readonly<Record<Kind, { readonly one: string; readonly many: string }>> = {
  model: { one: 'Model', many: 'Models' },
  tool: { one: 'Tool', many: 'Tools' },
  agent: { one: 'Agent', many: 'Agents' },
  image: { one: 'Image', many: 'Images' },
  video: { one: 'Video', many: 'Videos' },
};
