import {
  type ArgumentsHost,
  Catch,
  Controller,
  type DynamicModule,
  type ExceptionFilter,
  Get,
  Inject,
  Param,
  Post,
  UseFilters,
} from '@nestjs/common';
import type { Response } from 'express';
import type { Locks } from 'reenlock';
import { LockOn, LocksModule } from 'reenlock/nest';
import { OutOfStockError } from '../orders/inventory-service.ts';
import { orderKey } from '../orders/key.ts';
import { OrderService, type OrderView, type Shipment } from '../orders/order-service.ts';

/** 409 if nothing was left. Lock errors are for the module's own filter: 423 with Retry-After if an order was not free in time. */
@Catch(OutOfStockError)
class OutOfStockFilter implements ExceptionFilter<OutOfStockError> {
  catch({ status, message }: OutOfStockError, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<Response>().status(status).json({ error: message });
  }
}

@Controller('orders')
@UseFilters(OutOfStockFilter)
class OrdersController {
  readonly #orders: OrderService;

  constructor(@Inject(OrderService) orders: OrderService) {
    this.#orders = orders;
  }

  /** The guard takes the order's lock; the three services below re-enter it; it is released with the response. */
  @Post(':id/shipments')
  @LockOn(({ params }) => orderKey(params.id!))
  ship(@Param('id') id: string): Promise<Shipment> {
    return this.#orders.ship(id);
  }

  /** No guard: the service takes the lock, for as long as it reads. */
  @Get(':id')
  view(@Param('id') id: string): Promise<OrderView> {
    return this.#orders.view(id);
  }
}

class AppModule {}

/** The Express service, ported: the module and the decorator come from `reenlock/nest`, the services are the same. */
export function createModule(orders: OrderService, locks: Locks): DynamicModule {
  return {
    module: AppModule,
    imports: [LocksModule.forRoot({ locks })],
    controllers: [OrdersController],
    providers: [{ provide: OrderService, useValue: orders }],
  };
}
