import type { Config } from '#config';

/** Facts for the log when a gateway listens: its address, and how many services of each kind its file has. */
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
