import type { Config } from '#config';

/** What a gateway says of itself when it listens: how many services of each kind its own file has, by name. */
export function listeningFacts(config: Pick<Config, 'services' | 'dataDir'>, address: string): Record<string, unknown> {
  const count = (primitive: string) =>
    new Set(config.services.filter((one) => one.service.primitive === primitive).map((one) => one.service.name)).size;
  const kinds = {
    models: count('model'),
    tools: count('tool'),
    agents: count('agent'),
    images: count('image'),
    videos: count('video'),
  };
  return {
    address,
    ...Object.fromEntries(Object.entries(kinds).filter(([kind, services]) => services > 0 || kind === 'models')),
    data: config.dataDir,
  };
}
