\set w random(1, :warehouses)
\set carrier random(1, 10)
BEGIN;
WITH oldest AS (SELECT d, (SELECT min(no_o_id) FROM new_order WHERE no_w_id = :w AND no_d_id = d) AS o
                  FROM generate_series(1, 10) d),
     gone AS (DELETE FROM new_order USING oldest WHERE no_w_id = :w AND no_d_id = d AND no_o_id = o
              RETURNING no_d_id AS d, no_o_id AS o),
     carried AS (UPDATE orders SET o_carrier_id = :carrier FROM gone WHERE o_w_id = :w AND o_d_id = d AND o_id = o
                 RETURNING d, o_c_id AS c),
     lines AS (UPDATE order_line SET ol_delivery_d = now() FROM gone WHERE ol_w_id = :w AND ol_d_id = d AND ol_o_id = o
               RETURNING d, ol_amount AS amount),
     sums AS (SELECT d, sum(amount) AS amount FROM lines GROUP BY d)
UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
  FROM carried JOIN sums USING (d) WHERE c_w_id = :w AND c_d_id = d AND c_id = c;
END;
