import type { Seals } from '#wire';
import { createOwnLists, type OwnListsOptions } from '../call/own-lists.ts';
import type { HeldCalls } from '../servers/held-calls.ts';
import { createModernToLegacy } from '../servers/translators/modern-to-legacy.ts';
import { createModernToModern } from '../servers/translators/modern-to-modern.ts';
import { createUpstreamSessions } from '../servers/upstream-sessions.ts';
import { createToolCatalogue, type ToolCatalogue, type ToolCatalogueOptions } from './tool-catalogue.ts';

interface OwnCatalogueOptions
  extends
    Omit<OwnListsOptions, 'translators'>,
    Pick<ToolCatalogueOptions, 'catalog' | 'pins' | 'present' | 'now' | 'elapsed' | 'random'> {
  readonly held: HeldCalls;
  readonly seals: Seals;
  readonly replyBytesMax: number;
  /** Called with servers whose lists could not be read. */
  readonly onUnlisted: ToolCatalogueOptions['onError'];
}

/** The catalogue, with the sessions in which the gateway reads the lists. */
interface OwnCatalogue {
  readonly catalogue: ToolCatalogue;
  drain(): void;
  close(): Promise<void>;
}

/** Short, because a session for reading lists is not needed for the next reading. */
const SESSION_IDLE_MS = 5_000;
/** Most bytes of a page of a list. It is more than the catalogue keeps of all lists of a server. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;

export function createOwnCatalogue({ onUnlisted, ...options }: OwnCatalogueOptions): OwnCatalogue {
  const { held, seals, version } = options;
  const sessions = createUpstreamSessions({ ...options, idleMs: SESSION_IDLE_MS });
  const replyBytesMax = Math.min(options.replyBytesMax, PAGE_BYTES_MAX);
  const translators = {
    modern: createModernToModern({ seals, replyBytesMax, schemaOf: () => null, version }),
    legacy: createModernToLegacy({ sessions, held, seals, replyBytesMax }),
  };
  const catalogue = createToolCatalogue({
    ...createOwnLists({ ...options, translators }),
    ...options,
    onError: onUnlisted,
  });
  return {
    catalogue,
    drain() {
      catalogue.close();
      sessions.drain();
    },
    async close() {
      catalogue.close();
      await sessions.close();
    },
  };
}
