import { GatewayError } from '#errors';
import { printable } from '#security';
import { type Catalog, namesToCompare, nearestHint } from '#catalog';
import type { Pipeline } from '#call';
import type { TargetAdapters } from '#bridge';
import { BRIDGED_KINDS, fullName, WORD } from './builtin/bridged-services.ts';

interface KnownAddressDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers'>;
  readonly pipeline: Pick<Pipeline, 'lookUp'>;
  readonly targets: () => Partial<TargetAdapters>;
}

const NEAR_MAX = 1_000;

/**
 * Returns null if a tool service has the name. Else looks it up: resolves if any gateway has such a service. Rejects
 * with GatewayError `not_found`, with the nearest names, if no gateway has one.
 */
export function createKnownAddress({
  catalog,
  pipeline,
  targets,
}: KnownAddressDeps): (service: string) => Promise<void> | null {
  function* names(): Generator<string> {
    yield* namesToCompare(catalog.offers('tool'));
    for (const kind of BRIDGED_KINDS)
      for (const { name } of targets()[kind]?.list(NEAR_MAX) ?? []) yield fullName(kind, name);
  }

  const isKnown = (service: string): boolean => {
    try {
      catalog.resolve(service, 'tool');
      return true;
    } catch {
      return false;
    }
  };
  const lookUp = async (service: string): Promise<void> => {
    const known = pipeline.lookUp(service, 'tool');
    if (known !== null) await known;
    try {
      catalog.resolve(service, 'tool');
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'not_found') throw error;
      const kind = BRIDGED_KINDS.find((one) => service.startsWith(`${one}/`));
      const word = kind === undefined ? 'Service' : WORD[kind].replace(/^./, (letter) => letter.toUpperCase());
      const hint = nearestHint(service, names());
      throw new GatewayError('not_found', `${word} not found: ${printable(service)}${hint === '' ? '' : `. ${hint}`}`);
    }
  };
  return (service) => (isKnown(service) ? null : lookUp(service));
}
