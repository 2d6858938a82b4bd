\set w random(1, :warehouses)
\set d random(1, 10)
\set c random(1, :customers)
\set lines random(5, 15)
\set seed random(1, 1000000000)
BEGIN;
SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
 WHERE w_id = :w AND c_w_id = w_id AND c_d_id = :d AND c_id = :c;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d
 RETURNING d_next_o_id - 1 AS o \gset
INSERT INTO orders VALUES (:o, :d, :w, :c, now(), NULL, :lines, 1);
INSERT INTO new_order VALUES (:o, :d, :w);
WITH wanted AS (SELECT n, 1 + drawn(:seed + n, 1, :items) AS i, 1 + drawn(:seed + n, 2, 10) AS q
                  FROM generate_series(1, :lines) n),
     taken AS (UPDATE stock SET s_quantity = CASE WHEN s_quantity - q >= 10 THEN s_quantity - q ELSE s_quantity - q + 91 END,
                      s_ytd = s_ytd + q, s_order_cnt = s_order_cnt + 1
                 FROM (SELECT i, sum(q)::int4 AS q FROM wanted GROUP BY i) g
                WHERE s_w_id = :w AND s_i_id = g.i RETURNING s_i_id, s_dist_01)
INSERT INTO order_line SELECT :o, :d, :w, n, i, :w, NULL, q, q * i_price, s_dist_01
  FROM wanted JOIN item ON i_id = i JOIN taken ON s_i_id = i;
END;
