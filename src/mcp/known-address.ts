import { type Catalog, GatewayError, nearestHint, printable, type Speakers } from '#gateway';
import { fullName, SPOKEN, WORD } from './front/spoken.ts';

export interface KnownAddressDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers'>;
  readonly speakers: () => Partial<Speakers>;
}

/** Names of a kind that a wrong one is compared with. */
const NEAR_MAX = 1_000;

/** Throws GatewayError `not_found` with the nearest names where an address is of no tool service. */
export function createKnownAddress({ catalog, speakers }: KnownAddressDeps): (service: string) => void {
  function* names(): Generator<string> {
    yield* new Set(catalog.offers('tool').map(({ service }) => service));
    for (const kind of SPOKEN) for (const { name } of speakers()[kind]?.list(NEAR_MAX) ?? []) yield fullName(kind, name);
  }

  return (service) => {
    try {
      catalog.resolve(service, 'tool');
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'not_found') throw error;
      const kind = SPOKEN.find((one) => service.startsWith(`${one}/`));
      const word = kind === undefined ? 'Service' : WORD[kind].replace(/^./, (letter) => letter.toUpperCase());
      const hint = nearestHint(service, names());
      throw new GatewayError('not_found', `${word} not found: ${printable(service)}${hint === '' ? '' : `. ${hint}`}`);
    }
  };
}
