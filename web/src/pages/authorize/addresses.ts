/** The path of an address of this gateway, without the prefix of the API. */
const placeOf = (resource: string): string => {
  const { pathname } = new URL(resource);
  return pathname.replace(/\/+$/, '').replace(/^\/api\/v1(?=\/)/, '');
};

const WHOLE: Readonly<Record<string, string>> = {
  '': 'Everything: models, tools, agents, and the figures of your account.',
  '/api/v1': 'Models, images and videos, and the figures of your account.',
  '/mcp': 'All tools.',
  '/a2a': 'All agents.',
};

/** An address of this gateway in words. */
export function addressName(resource: string): string {
  const place = placeOf(resource);
  const [, kind = '', service = ''] = /^\/(mcp|a2a)\/(.+)$/.exec(place) ?? [];
  if (service !== '') return kind === 'mcp' ? `The tools of ${service}.` : `The agent ${service}.`;
  return WHOLE[place] ?? 'A part of this gateway.';
}

/** The services that addresses name. Empty if one of them is for more than one service. */
export function addressServices(resources: readonly string[]): readonly string[] {
  const names = resources.map((resource) => /^\/(?:mcp|a2a)\/(.+)$/.exec(placeOf(resource))?.[1]);
  return names.every((name) => name !== undefined) ? names : [];
}
