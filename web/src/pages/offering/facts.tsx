import type { ReactNode } from 'react';
import type { ServiceDetail } from '../../api/catalogue.ts';
import { Card } from '../../ui/card.tsx';
import { priceGroups, type PriceLine, priceLines } from '../../ui/price-words.ts';
import { Time } from '../../ui/time.tsx';
import { factsOf, priceSentence, priceTitle } from './card-texts.ts';

/** The price of a service per unit, with the price of an example. */
export function PriceCard({ service }: { readonly service: ServiceDetail }): ReactNode {
  return (
    <Card title={priceTitle(service)}>
      <PriceLines lines={priceLines(service.primitive, service.pricing)} />
      {priceGroups(service.pricing).map(({ title, lines }) => (
        <section key={title} className="mt-4">
          <h3 className="mb-2 text-sm font-semibold">{title}</h3>
          <PriceLines lines={lines} />
        </section>
      ))}
      <p className="mt-4 border-t border-line pt-4 text-sm text-soft">
        {priceSentence(service).map((piece) =>
          typeof piece === 'string' ? (
            piece
          ) : (
            <b key={piece.strong} className="figures font-semibold text-ink">
              {piece.strong}
            </b>
          ),
        )}
      </p>
    </Card>
  );
}

function PriceLines({ lines }: { readonly lines: readonly PriceLine[] }): ReactNode {
  return (
    <dl className="grid gap-2">
      {lines.map(({ amount, unit }) => (
        <div key={unit} className="flex items-baseline justify-between gap-4">
          <dt className="text-sm break-words text-soft">{unit}</dt>
          <dd className="figures font-semibold">{amount}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The facts that a caller needs. */
export function FactsCard({ service }: { readonly service: ServiceDetail }): ReactNode {
  return (
    <Card title="Facts">
      <dl className="grid gap-2 text-sm">
        {factsOf(service).map(([name, value]) => (
          <div key={name} className="flex items-baseline justify-between gap-6">
            <dt className="whitespace-nowrap text-soft">{name}</dt>
            <dd className="figures text-right">{typeof value === 'string' ? value : <Time at={value.at} />}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
