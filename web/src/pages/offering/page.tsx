import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function OfferingPage(): ReactNode {
  return <Heading title="Service" lead="One service." />;
}
