/** The path of an address of this gateway, without the prefix of the API. */
const placeOf = (resource: string): string => {
  const { pathname } = new URL(resource);
  return pathname.replace(/\/+$/, '').replace(/^\/api\/v1(?=\/)/, '');
};

/** The API and the tools reach everything: a model's name may be that of a tool, and a tool may ask a model. */
const WHOLE: Readonly<Record<string, string>> = {
  '': 'Everything: models, tools, agents, and the figures of your account.',
  '/api/v1': 'Every service, through the API of models, and the figures of your account.',
  '/mcp': 'All tools, and models and agents as tools.',
  '/a2a': 'All agents.',
};

interface Place {
  readonly kind: 'tools' | 'agent' | 'model';
  readonly service: string;
}

/** The service at an address; null for an address of more than one. */
function serviceAt(resource: string): Place | null {
  const [, way = '', service = ''] = /^\/(a2a|mcp\/(?:a2a|model|image|video)|mcp)\/(.+)$/.exec(placeOf(resource)) ?? [];
  if (service === '') return null;
  return { kind: way === 'mcp' ? 'tools' : way.endsWith('a2a') ? 'agent' : 'model', service };
}

/** An address of this gateway in words. */
export function addressName(resource: string): string {
  const place = serviceAt(resource);
  if (place === null) return WHOLE[placeOf(resource)] ?? 'A part of this gateway.';
  return place.kind === 'tools' ? `The tools of ${place.service}.` : `The ${place.kind} ${place.service}.`;
}

/** The services that addresses name. Empty if one of them is for more than one service. */
export function addressServices(resources: readonly string[]): readonly string[] {
  const services = resources.map((resource) => serviceAt(resource)?.service);
  return services.every((service) => service !== undefined) ? services : [];
}
