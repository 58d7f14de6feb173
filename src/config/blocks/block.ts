import type { Primitive } from '../primitive.ts';
import type { OptionTable, ValuesOf } from '../option.ts';
import type { Table } from '../reading.ts';
import type { Service, Target } from '../config.ts';

/** Says what is wrong with a block as a whole, at one of its keys. */
type Complain = (key: string, wrong: string, right: string) => void;

/** The file that a block stands in. */
export interface Place {
  /** A gateway reaches services by address only; a provider's proxy also runs commands. */
  readonly commands: boolean;
  /** The directory that relative paths of the file start at. */
  readonly directory: string;
}

/**
 * One kind of block. Its keys are in two tables: `offer` is what the service is and costs, which also stands in a
 * registration; `target` is where it runs, which never leaves the machine that reads the file. The functions get
 * values that have passed their own options, and complain of what does not go together.
 */
export interface BlockKind {
  readonly primitive: Primitive;
  readonly offer: OptionTable;
  readonly target: OptionTable;
  toService(values: Readonly<Record<string, unknown>>, complain: Complain): Service;
  toTarget(values: Readonly<Record<string, unknown>>, complain: Complain, place: Place): Target;
  /** The `offer` part of a block that reads as this service. Prices are decimal texts. */
  toBlock(service: Service): Table;
}

/**
 * The kind of `S`, with its functions typed by its tables. Types are erased here only, so that all kinds fit into
 * one list.
 */
export function defineBlock<S extends Service, O extends OptionTable, T extends OptionTable>(kind: {
  readonly primitive: S['primitive'];
  readonly offer: O;
  readonly target: T;
  toService(values: ValuesOf<O>, complain: Complain): Omit<S, keyof Common>;
  toTarget(values: ValuesOf<T>, complain: Complain, place: Place): Target;
  toBlock(service: S): Table;
}): BlockKind {
  return {
    primitive: kind.primitive,
    offer: kind.offer,
    target: kind.target,
    toService(values, complain) {
      const {
        name,
        display_name: displayName,
        provider_name: providerName,
        description,
      } = values as unknown as CommonValues;
      return {
        primitive: kind.primitive,
        name,
        displayName,
        providerName,
        description,
        ...kind.toService(values as ValuesOf<O>, complain),
      } as unknown as Service;
    },
    toTarget: (values, complain, place) => kind.toTarget(values as ValuesOf<T>, complain, place),
    toBlock: (service) => ({
      name: service.name,
      display_name: service.displayName,
      provider_name: service.providerName,
      ...(service.description === '' ? {} : { description: service.description }),
      ...kind.toBlock(service as S),
    }),
  };
}

type Common = Pick<Service, 'primitive' | 'name' | 'displayName' | 'providerName' | 'description'>;
interface CommonValues {
  readonly name: string;
  readonly display_name: string;
  readonly provider_name: string;
  readonly description: string;
}
