import { GatewayError } from '#errors';
import { inTurns, readJson } from '#wire';
import {
  BLOCK_TABLES,
  BLOCKS,
  readOffers,
  ConfigError,
  show,
  type ConfigProblem,
  complain,
  isTable,
  unknownKey,
  type ConfigReading,
  type Table,
  type Service,
  type ServiceConfig,
} from '#config';
import { CONTROL_LINE_BYTES_MAX, type RegistrationDocument, type RegistrationProblem } from '../tunnel-wire.ts';

const VERSION = 1;

/** Nesting of a document: its lists, their blocks, the pricing of a block, prices by name. */
const DEPTH_MAX = 8;
/** A block has about twenty keys. A server with many separately priced tools has more. */
const KEYS_PER_SERVICE = 64;
const KEYS_MORE = 2_000;
/**
 * Limits on prices of parts, such as a tool or a tier: an average for each service, and an allowance for the document.
 * There are limits because each price is stored forever.
 */
const PARTS_PER_SERVICE = 4;
const PARTS_MORE = 2_000;

const TURN_MS = 5;
/** Each takes about 40 µs, most of it for the options that are nearest to an unknown one. */
const PROBLEMS_MAX = 200;

/** A registration was refused as a whole. It has the list of all problems. */
export class RegistrationError extends Error {
  override readonly name = 'RegistrationError';
  readonly problems: readonly RegistrationProblem[];
  constructor(problems: readonly RegistrationProblem[]) {
    super(`The registration has ${problems.length === 1 ? '1 problem' : `${problems.length} problems`}`);
    this.problems = problems;
  }
}

interface RegistrationLimits {
  readonly servicesMax: number;
}

/** The services of a proxy in the form that it sends to a gateway. It has no address, key or command. */
export function toRegistrationDocument(services: readonly ServiceConfig[]): RegistrationDocument {
  const document: Record<string, unknown> = { version: VERSION };
  for (const table of BLOCK_TABLES) {
    const kind = BLOCKS[table];
    const offered = services.filter(({ service }) => service.primitive === kind.primitive);
    if (offered.length > 0) document[table] = offered.map(({ service }) => kind.toBlock(service));
  }
  return document as unknown as RegistrationDocument;
}

/**
 * Parses an untrusted registration document, with the same options as the blocks of a configuration file. It must have
 * at least one service, and all services must belong to one provider. Reads a few services in each turn of the event
 * loop. Rejects with RegistrationError.
 */
export async function readRegistration(text: string, { servicesMax }: RegistrationLimits): Promise<readonly Service[]> {
  const problems: ConfigProblem[] = [];
  const reading: ConfigReading = { file: null, lineOf: () => null, env: {}, problems, problemsMax: PROBLEMS_MAX };
  try {
    const document = await parse(text, servicesMax);
    const services = await inTurns(readDocument(document, servicesMax, reading), TURN_MS);
    if (problems.length === 0) return services;
  } catch (error) {
    // ConfigError: there were so many problems that reading stopped.
    if (!(error instanceof ConfigError)) throw error;
  }
  throw new RegistrationError(problems.map(({ key, wrong, right }) => ({ key, wrong, right })));
}

async function parse(text: string, servicesMax: number): Promise<unknown> {
  const refused = (wrong: string, right: string) => new RegistrationError([{ key: 'document', wrong, right }]);
  if (text.length > CONTROL_LINE_BYTES_MAX)
    throw refused(`has ${text.length} characters`, `at most ${CONTROL_LINE_BYTES_MAX}`);
  try {
    return await readJson(Buffer.from(text), {
      jsonDepthMax: DEPTH_MAX,
      jsonKeysMax: KEYS_MORE + servicesMax * KEYS_PER_SERVICE,
    });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    throw refused(
      error.message.replace(/^The body /, ''),
      'a JSON object with the lists models, tools, agents, images and videos',
    );
  }
}

function* readDocument(
  document: unknown,
  servicesMax: number,
  reading: ConfigReading,
): Generator<void, readonly Service[], undefined> {
  if (!isTable(document)) {
    complain(reading, 'document', `is ${show(document)}`, 'an object');
    return [];
  }
  if (document['version'] !== VERSION)
    complain(
      reading,
      'version',
      `is ${show(document['version'])}`,
      `${VERSION}, the one version that this gateway reads`,
    );
  const known: readonly string[] = ['version', ...BLOCK_TABLES];
  for (const key of Object.keys(document)) if (!known.includes(key)) unknownKey(key, key, known, reading);
  const parts = countParts(document);
  const partsMax = PARTS_MORE + PARTS_PER_SERVICE * servicesMax;
  if (parts > partsMax) {
    complain(reading, 'document', `has ${parts} prices of tools, tiers and resolutions`, `at most ${partsMax}`);
    return [];
  }
  const services = yield* readOffers(document, { max: servicesMax, oneProvider: true }, reading);
  if (services.length === 0 && reading.problems.length === 0)
    complain(reading, 'document', 'offers nothing', 'at least one service');
  return services;
}

/** Counts the prices of parts before the document is read, because reading many of them takes long. */
function countParts(document: Table): number {
  let count = 0;
  for (const table of BLOCK_TABLES) {
    const blocks = document[table];
    if (!Array.isArray(blocks)) continue;
    for (const block of blocks as readonly unknown[]) {
      const pricing = isTable(block) ? block['pricing'] : null;
      if (isTable(pricing))
        for (const prices of Object.values(pricing)) if (isTable(prices)) count += Object.keys(prices).length;
    }
  }
  return count;
}
